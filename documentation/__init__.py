"""Documentation of the project as a site (`make docs`), and its generated reference pages (`make reference`)."""
