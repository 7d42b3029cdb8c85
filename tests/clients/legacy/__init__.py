"""The last 1.x of the official Python SDK. In a folder of its own because two majors cannot share an environment."""
