"""Static pictures of the views: SVG that needs no script, no style sheet and no other file."""
