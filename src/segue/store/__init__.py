"""One database: its tables, engines, migrations and group-commit writer.

The queries are SQLAlchemy Core, so that one text serves SQLite and PostgreSQL. Only the journal imports this package,
because only the journal knows what a transaction must contain.
"""
