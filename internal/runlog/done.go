package runlog

// Done tells a delivery that its execution is over, after Ack, Retry or neither. Deliveries of a
// queue that counts what is executed have a method Done; others are left alone.
func Done(d Delivery) {
	if e, ok := d.(interface{ Done() }); ok {
		e.Done()
	}
}
