"""What is kept: tables, engine, migrations. The only SQL of the house."""
