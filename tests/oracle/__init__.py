"""An independent oracle for devices: PTX run one thread at a time, written from the text of the PTX ISA.

It shares with the package only the reader (``teenycli.ptx``) and is made to be plain, not fast: integers are Python's,
a floating-point number is ``sign * m * 2**e`` in integers, and every result is rounded once from its exact value.
Where the ISA leaves a result open (a quotient by zero, the payload of a double's NaN) the oracle says None, and None
spreads to all that depends on it.
"""
