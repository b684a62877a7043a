# A page with the winner's confusion matrix and all scores.
NR == 1 { winner = $1; accuracy = $2; ee = $3; es = $4; se = $5; ss = $6; next }
{ rows = rows sprintf("<tr><td>%s</td><td>%.1f %%</td></tr>\n", $1, $2 * 100) }
END {
    print "<!doctype html><meta charset=utf-8><title>Galaxies</title>"
    print "<style>body{font:16px system-ui;max-width:40em;margin:2em auto}td,th{padding:.3em 1em;text-align:right}</style>"
    printf "<h1>Galaxies</h1><p>Learning rate %s is best: %.1f %% of the held-out objects are told right.</p>\n", winner, accuracy * 100
    print "<table><tr><th></th><th>called elliptical</th><th>called spiral</th></tr>"
    printf "<tr><th>elliptical</th><td>%d</td><td>%d</td></tr><tr><th>spiral</th><td>%d</td><td>%d</td></tr></table>\n", ee, es, se, ss
    print "<h2>All learning rates</h2><table><tr><th>rate</th><th>accuracy</th></tr>"
    print rows "</table>"
}
