"""Pages that are made: the report in HTML, and pages of docs in Markdown."""
