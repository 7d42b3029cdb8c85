"""The pages under `/api`, and those to confirm under `/interaction`. Nothing under `/api` changes anything."""
