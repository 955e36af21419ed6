"""The result of a run as data, and its renderings for GitHub, a browser and a terminal."""
