"""Reports as web pages: one self-contained file with text, tables, charts and videos."""
