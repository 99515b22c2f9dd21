CREATE TABLE "applied_files" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"file" text NOT NULL,
	"owner" text,
	"prune" boolean DEFAULT false NOT NULL,
	"items" jsonb NOT NULL,
	"differences" text[] DEFAULT '{}' NOT NULL,
	"applied_by" uuid,
	"applied_at" timestamp(3) with time zone NOT NULL,
	"checked_at" timestamp(3) with time zone NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "applied_files_items" CHECK (jsonb_typeof("applied_files"."items") = 'array')
);
--> statement-breakpoint
ALTER TABLE "applied_files" ADD CONSTRAINT "applied_files_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "applied_files" ADD CONSTRAINT "applied_files_applied_by_users_id_fk" FOREIGN KEY ("applied_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "applied_files_file" ON "applied_files" USING btree ("account_id",coalesce("owner", ''),"file");--> statement-breakpoint
CREATE INDEX "applied_files_checked" ON "applied_files" USING btree ("checked_at");