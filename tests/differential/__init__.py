"""Our answers beside those of an independent implementation; each difference is explained."""
