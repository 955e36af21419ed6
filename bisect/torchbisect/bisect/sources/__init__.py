"""Sources of builds: releases, nightlies, commits, partial wheels, builds from source."""
