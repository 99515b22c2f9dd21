CREATE TABLE "stream_days" (
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"day" date NOT NULL,
	"stream_name" text NOT NULL,
	"rows_free" bigint NOT NULL,
	"rows_paid" bigint NOT NULL,
	"credits_used" bigint NOT NULL,
	"credits_free" bigint NOT NULL,
	"bytes_loaded" bigint NOT NULL,
	CONSTRAINT "stream_days_connection_id_day_stream_name_pk" PRIMARY KEY("connection_id","day","stream_name"),
	CONSTRAINT "stream_days_counts" CHECK ("stream_days"."rows_free" >= 0 and "stream_days"."rows_paid" >= 0 and "stream_days"."credits_used" >= 0 and "stream_days"."credits_free" >= 0
        and "stream_days"."bytes_loaded" >= 0)
);
--> statement-breakpoint
ALTER TABLE "stream_days" ADD CONSTRAINT "stream_days_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "stream_days_account" ON "stream_days" USING btree ("account_id","day","connection_id","rows_free","rows_paid");