"""Histories of other people's tables and files: read, never written."""
