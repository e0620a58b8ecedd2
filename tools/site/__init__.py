"""What turns pages into the website: Sphinx extensions, assets, print, marks."""
