"""Floods a server for minutes and looks at what that did to everybody else, and at what it left behind."""
