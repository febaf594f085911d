// Bytes that nobody has validated cannot be hydrated: with LYO_UNCHECKED this must not compile, without it it must.
import lyo.base;
import lyo.artifact;
import lyo.hydration;

bool live(const lyo::Bytes& bytes) {
#ifdef LYO_UNCHECKED
    return lyo::hydrate(bytes, lyo::Device::cpu()).has_value();
#else
    const auto artifact = lyo::Artifact::check(bytes);
    return artifact.has_value() && lyo::hydrate(*artifact, lyo::Device::cpu()).has_value();
#endif
}
