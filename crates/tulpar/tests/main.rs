//! The library as another program calls it: requests in, typed results and files of runs out.

mod main {
    mod starting;
}
