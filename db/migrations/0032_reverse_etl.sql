CREATE TABLE "rejected_rows" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"stream_run_id" uuid NOT NULL,
	"operation" text NOT NULL,
	"key" text NOT NULL,
	"code" text NOT NULL,
	"message" text NOT NULL,
	"status" integer,
	"answer" text,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "rejected_rows_operation_known" CHECK ("rejected_rows"."operation" in ('insert', 'update', 'delete'))
);
--> statement-breakpoint
CREATE TABLE "sent_rows" (
	"stream_id" uuid NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "sent_rows_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"place" text NOT NULL,
	"settled" boolean NOT NULL,
	"entries" integer NOT NULL,
	"data" "bytea" NOT NULL,
	CONSTRAINT "sent_rows_stream_id_id_pk" PRIMARY KEY("stream_id","id"),
	CONSTRAINT "sent_rows_entries" CHECK ("sent_rows"."entries" >= 1)
);
--> statement-breakpoint
ALTER TABLE "rejected_rows" ADD CONSTRAINT "rejected_rows_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rejected_rows" ADD CONSTRAINT "rejected_rows_stream_run_id_stream_runs_id_fk" FOREIGN KEY ("stream_run_id") REFERENCES "public"."stream_runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sent_rows" ADD CONSTRAINT "sent_rows_stream_id_connection_streams_id_fk" FOREIGN KEY ("stream_id") REFERENCES "public"."connection_streams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "rejected_rows_stream_run" ON "rejected_rows" USING btree ("stream_run_id","id");