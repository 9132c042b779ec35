#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

namespace ropd {
namespace {

EVP_MD_CTX* context_of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

}  // namespace

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(context_of(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr);
}

void Sha256::add(const void* bytes, size_t count) {
  EVP_DigestUpdate(context_of(context_.get()), bytes, count);
}

std::string Sha256::hexadecimal() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), nullptr);
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace ropd
