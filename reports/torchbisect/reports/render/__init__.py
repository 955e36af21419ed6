"""Renderings of a report: Markdown, HTML and terminal text."""
