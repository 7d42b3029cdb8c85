"""What a tool is, and what a selection of tools, resources and prompts offers."""
