"""Arrays in and out: files, generators, references, comparison. The room with numpy.

May import ``ptx`` and what lies below it. Nothing is imported here, so that asking for the room costs nothing.
"""
