"""The tab of pictures: a wall of the images of a column."""
