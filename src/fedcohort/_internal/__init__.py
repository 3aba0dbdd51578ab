"""What all packages use: errors, parameters, registry, files, random streams."""
