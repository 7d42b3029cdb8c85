"""The listener over real sockets, with raw peers; the same bodies run on anycorn where it can."""
