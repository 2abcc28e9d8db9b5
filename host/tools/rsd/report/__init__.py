"""The HTML report of a comparison: page.py the text and tables, plots.py the pictures."""
