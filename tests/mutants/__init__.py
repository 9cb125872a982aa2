"""A mutation test of what ``check`` finds: every op of a manifest with one thing wrong in it, over and over.

``kinds`` makes the mutants, ``oracle`` tells which of them compute something else, ``judges`` who reports them,
``tables`` shows it. ``python -m tests.mutants [MANIFEST] [--op OP] [--kind KIND]`` prints it all.
"""
