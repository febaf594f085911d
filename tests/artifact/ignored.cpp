// A failure cannot be overlooked: with LYO_IGNORED this must not compile, without it it must.
import lyo.base;
import lyo.artifact;

bool verified(const lyo::Artifact& artifact) {
#ifdef LYO_IGNORED
    artifact.verify_constants();
    return true;
#else
    return artifact.verify_constants().has_value();
#endif
}
