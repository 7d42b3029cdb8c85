"""What it takes to run the probe on the internet: image, proxy, Azure, workflows."""
