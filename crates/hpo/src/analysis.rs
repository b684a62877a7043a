//! What a study says when it is looked at.
