"""Packages that Leeward runs with and is built with: their versions and hashes, licences and known weaknesses."""
