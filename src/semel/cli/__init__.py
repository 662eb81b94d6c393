"""The command line: it reads by `semel.store.views`, acts by `semel.operate`, and holds no SQL and no rules."""
