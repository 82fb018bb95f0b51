package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// Names of the headers of Standard Webhooks 1.0. They are sent in addition to the protocol's, so
// that a receiver can use a library of that specification.
const (
	HeaderStandardID        = "webhook-id"
	HeaderStandardTimestamp = "webhook-timestamp"
	HeaderStandardSignature = "webhook-signature"
)

// MessageID identifies an event to the receiver of a webhook. It is the same for each attempt, also
// by another host.
func MessageID(webhookID, runID string, sequence int) string {
	sum := sha256.Sum256([]byte(webhookID + "\n" + runID + "\n" + strconv.Itoa(sequence)))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// SignStandard signs a message as Standard Webhooks does, once for each secret. The key is what the
// secret's text means in base64, as in the libraries of the specification: they take the secret as
// it is. A secret that is no base64 signs nothing.
func SignStandard(secrets []string, id string, unix int64, body []byte) string {
	var signatures []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(secret)
		if err != nil {
			continue
		}
		m := hmac.New(sha256.New, key)
		m.Write([]byte(id + "." + strconv.FormatInt(unix, 10) + "."))
		m.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}
