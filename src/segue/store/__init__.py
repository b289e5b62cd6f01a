"""One database: its tables, its engines, its migrations and the group-commit writer.

SQLAlchemy Core, so that one text serves SQLite and PostgreSQL. Nobody but the journal opens this door: the rest of the
house asks the journal, which knows what a transaction must contain.
"""
