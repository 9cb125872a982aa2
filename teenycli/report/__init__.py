"""What teeny shows: plain rows drawn as text, in colour or not, or as JSON.

May import every room below it, for types and plain data only. rich is imported inside functions, numpy never.
"""
