# Judges a model on the objects it has not seen: rate, accuracy, confusion counts.
NR == 1 { b = $1; wx = $2; wy = $3; FS = ","; next }
FNR % 5 == 0 {
    guess = b + wx * $1 + wy * $2 > 0
    n++; right += guess == $3; count[$3 guess]++
}
END {
    printf "%s %.4f %d %d %d %d\n", rate, right / n, count["00"], count["01"], count["10"], count["11"]
}
