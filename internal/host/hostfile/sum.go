package hostfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"os"
)

// A flipped bit of a key makes another key: runs of repeated requests are not found, and signatures
// are not valid, without an error. So each key that the host creates has a file with its SHA-256.

const sumSuffix = ".sum"

func sumOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return hex.AppendEncode(nil, sum[:])
}

// readSummed reads a key that the host created, and repairs a flipped bit of it or of its sum. check
// returns why a content is no key. os.ErrNotExist means that there is neither key nor sum.
func readSummed(path string, check func([]byte) error, log *slog.Logger) ([]byte, error) {
	content, err := os.ReadFile(path)            //nolint:gosec // G304: the operator names the directory
	sum, errSum := os.ReadFile(path + sumSuffix) //nolint:gosec // G304: the operator names the directory
	switch {
	case errors.Is(err, os.ErrNotExist) && errSum == nil:
		return nil, fmt.Errorf("%s is missing, and was there before: restore it, or delete %s to have the host make another one", path, path+sumSuffix)
	case err != nil:
		return nil, err
	case errors.Is(errSum, os.ErrNotExist): // a key of an earlier build, or a restored one
		if err := check(content); err != nil {
			return nil, err
		}
		return content, WriteKey(path+sumSuffix, sumOf(content))
	case errSum != nil:
		return nil, errSum
	case bytes.Equal(sum, sumOf(content)):
		return content, nil
	case differences(sum, sumOf(content)) == 1:
		log.Error("a flipped bit was repaired", "file", path+sumSuffix)
		return content, WriteKey(path+sumSuffix, sumOf(content))
	case !unflip(content, sum):
		return nil, fmt.Errorf("%s is damaged, or not the one that was used here before: restore it, or delete %s to use it", path, path+sumSuffix)
	}
	log.Error("a flipped bit was repaired", "file", path)
	return content, WriteKey(path, content)
}

// unflip finds the bit whose flip gives a content its sum, and flips it. It returns false if there is
// none.
func unflip(content, sum []byte) bool {
	for i := range content {
		for bit := range 8 {
			content[i] ^= 1 << bit
			if bytes.Equal(sumOf(content), sum) {
				return true
			}
			content[i] ^= 1 << bit
		}
	}
	return false
}

// differences counts the bits in which two texts differ.
func differences(a, b []byte) (n int) {
	if len(a) != len(b) {
		return 8 * max(len(a), len(b))
	}
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// createSummed writes a key and its sum.
func createSummed(path string, content []byte) error {
	return errors.Join(WriteKey(path, content), WriteKey(path+sumSuffix, sumOf(content)))
}
