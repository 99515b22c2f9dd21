CREATE TABLE "delivered_batches" (
	"stream_run_id" uuid NOT NULL,
	"key" text NOT NULL,
	"rejected" integer NOT NULL,
	CONSTRAINT "delivered_batches_stream_run_id_key_pk" PRIMARY KEY("stream_run_id","key"),
	CONSTRAINT "delivered_batches_counts" CHECK ("delivered_batches"."rejected" >= 0)
);
--> statement-breakpoint
ALTER TABLE "delivered_batches" ADD CONSTRAINT "delivered_batches_stream_run_id_stream_runs_id_fk" FOREIGN KEY ("stream_run_id") REFERENCES "public"."stream_runs"("id") ON DELETE cascade ON UPDATE no action;