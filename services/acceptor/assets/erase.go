package assets

import (
	"context"
	"encoding/base64"
	"regexp"
	"strings"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
)

// tokenText matches tokens in events. JSON and URLs escape none of their characters.
var tokenText = regexp.MustCompile(`[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{43}`)

// Erase removes the assets of a run that events refer to. It does not check signatures, because the
// key may have been replaced: an event of a run names only the run's own assets to it.
func Erase(ctx context.Context, blobs blob.Store, run subject.Run, events []byte) error {
	for _, text := range tokenText.FindAll(events, -1) {
		head, _, _ := strings.Cut(string(text), ".")
		body, err := base64.RawURLEncoding.DecodeString(head)
		var c tokenClaims
		if err != nil || strictjson.Read(body, &c) != nil || c.Tenant != run.Tenant || c.Run != run.RunID {
			continue
		}
		if err := blobs.Erase(ctx, blobName(c.Tenant, c.Asset)); err != nil {
			return err
		}
	}
	return nil
}
