# Logistic regression by stochastic gradient descent. Every fifth object is held out.
BEGIN { FS = "," }
FNR % 5 != 0 { n++; x[n] = $1; y[n] = $2; label[n] = $3 }
END {
    for (epoch = 1; epoch <= epochs; epoch++) {
        loss = 0
        for (i = 1; i <= n; i++) {
            z = b + wx * x[i] + wy * y[i]
            p = 1 / (1 + exp(-z))
            error = p - label[i]
            b -= rate * error; wx -= rate * error * x[i]; wy -= rate * error * y[i]
            q = label[i] ? p : 1 - p
            loss -= log(q < 1e-12 ? 1e-12 : q)
        }
        printf "epoch %d loss %.5f\n", epoch, loss / n > "/dev/stderr"
    }
    printf "%.6f %.6f %.6f\n", b, wx, wy
}
