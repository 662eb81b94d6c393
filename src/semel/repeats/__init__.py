"""Finds past repeats in tables and files, and says what their timing suggests. It sends nothing anywhere."""
