"""Toolset `streaming`: what gateways must forward faithfully, in time, in order and byte for byte."""
