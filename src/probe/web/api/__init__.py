"""The pages under `/api`. Nothing there changes anything."""
