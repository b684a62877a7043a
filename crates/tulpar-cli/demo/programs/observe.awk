# Draws objects of two kinds with overlapping features, twelve plates of them, some readings broken.
BEGIN {
    srand(seed)
    for (i = 0; i < objects; i++) {
        spiral = rand() < 0.5
        concentration = (spiral ? 2.6 : 3.5) + gauss() * 0.45
        asymmetry = (spiral ? 0.32 : 0.14) + gauss() * 0.09
        plate = sprintf("plates/plate-%02d.csv", i % 12)
        if (rand() < 0.02) concentration = "nan"
        print concentration "," asymmetry "," (spiral ? 1 : 0) > plate
    }
}
function gauss(   u, v) {
    u = rand() + 1e-12; v = rand()
    return sqrt(-2 * log(u)) * cos(6.283185307 * v)
}
