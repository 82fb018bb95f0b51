package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// Algorithm is the algorithm of signatures.
const Algorithm = "ed25519"

// Key signs checkpoints, and nothing else.
type Key struct {
	private ed25519.PrivateKey
	public  string
}

const pemType = "PRIVATE KEY"

// NewKey makes a key.
func NewKey() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	return keyOf(private)
}

// ParseKey reads an Ed25519 key in PEM (PKCS #8).
func ParseKey(text []byte) (*Key, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return nil, errors.New("must be a PEM block PRIVATE KEY (PKCS #8), such as the output of `openssl genpkey -algorithm ed25519`")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the PEM block is not a PKCS #8 key")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("must be an Ed25519 key, such as the output of `openssl genpkey -algorithm ed25519`")
	}
	return keyOf(private)
}

func keyOf(private ed25519.PrivateKey) (*Key, error) {
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	return &Key{private: private, public: base64.StdEncoding.EncodeToString(der)}, nil
}

// PEM returns the key in the format of ParseKey.
func (k *Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// Public returns the public key: base64 of its SPKI DER.
func (k *Key) Public() string { return k.public }

// sign signs the bytes of a root in hex.
func (k *Key) sign(root string) (string, error) {
	b, err := hex.DecodeString(root)
	if err != nil {
		return "", fmt.Errorf("audit: merkle root: %w", err)
	}
	return base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, b)), nil
}

// verify reports whether a signature is this key's signature of a root.
func (k *Key) verify(root, signature string) bool {
	b, err := hex.DecodeString(root)
	if err != nil {
		return false
	}
	sig, err := base64.StdEncoding.DecodeString(signature)
	public, ok := k.private.Public().(ed25519.PublicKey)
	return err == nil && ok && ed25519.Verify(public, b, sig)
}
