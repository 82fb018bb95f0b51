package waiting

import (
	"time"

	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/protocol/workflow"
)

const rateBucket = "waybill_rates"

// TicketBucket is where tickets, permits and processes are kept.
func TicketBucket() jetkv.Config {
	// An autoscaler counts the messages of tickets, deletion markers included, so these are short.
	return jetkv.Config{Bucket: Bucket, Description: "runs that wait for a slot or a limit", MarkerTTL: time.Second}
}

// RateBucket is where the starts of rate limits are kept, for as long as a period can be.
func RateBucket() jetkv.Config {
	return jetkv.Config{Bucket: rateBucket, Description: "starts of runs under a rate limit", TTL: workflow.MaxPeriod + time.Hour}
}
