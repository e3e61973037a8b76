"""What a training needs and how fast it goes, by strategy and size: looked at, reckoned, put into words."""
