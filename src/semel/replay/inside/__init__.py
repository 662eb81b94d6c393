"""Small programs that run among the user's code, started by replay and spoken to in JSON lines; nothing is wrapped there.

So the code before and the code after never meet in one process, and replay itself imports neither.
"""
