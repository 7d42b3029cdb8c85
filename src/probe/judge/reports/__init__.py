"""One report in many forms, each made of nothing but a `Report` and the entries that it names."""
