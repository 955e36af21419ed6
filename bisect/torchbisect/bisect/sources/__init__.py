"""Where builds come from: releases, nightlies, commits, partial wheels, source builds."""
