//! Real processes in real sandboxes, one file a subject.

mod it {
    mod scene;

    mod capture;
    mod checkpoints;
    mod containers;
    mod crash;
    mod endings;
    mod measures;
    mod outputs;
    mod programs;
    mod sandboxes;
    mod scale;
    mod scripts;
}
